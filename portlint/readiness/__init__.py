"""Is this tree ready for that machine? What `portlint report` computes, and the formats that show it."""
