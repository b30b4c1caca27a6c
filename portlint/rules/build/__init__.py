"""What a build makes the code for."""
