"""Blocks and models: transformers and recurrent ones, their cache, what they are trained on."""
