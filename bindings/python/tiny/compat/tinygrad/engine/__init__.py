"""What of tinygrad's engine programs import."""
