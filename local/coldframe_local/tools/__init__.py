"""Developers' scripts: images, lock files, SAM, and an import rule."""
