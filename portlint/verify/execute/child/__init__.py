"""What runs beside the user's file: it pretends the device, and writes down what it sees."""
