"""Tables that tinygrad generates from headers."""
