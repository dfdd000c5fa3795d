"""The trainer's half that knows no back end."""
