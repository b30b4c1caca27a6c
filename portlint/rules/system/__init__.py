"""Variables, tools and links of one vendor's systems."""
