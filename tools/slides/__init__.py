"""Decks of slides from lectures/*.md and the chapters that these refer to."""
