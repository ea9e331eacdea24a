"""Of what tinygrad's programs find beside it there is `lr_scheduler`."""
