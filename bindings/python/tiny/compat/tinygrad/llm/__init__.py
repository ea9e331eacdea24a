"""Of tinygrad.llm there is `gguf`."""
