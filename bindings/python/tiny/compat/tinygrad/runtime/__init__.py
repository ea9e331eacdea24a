"""The inner names of tinygrad.runtime that programs import."""
