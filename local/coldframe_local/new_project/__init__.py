"""Projects of one's own: their files, the wheel that they are pinned to, and packed encoders."""
