"""From a chapter's MyST Markdown to its notebook: parse, number, translate, execute."""
