"""Device strings, backends and what must exist before they are used."""
