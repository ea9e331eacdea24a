"""What of tinygrad's runtime programs import."""
