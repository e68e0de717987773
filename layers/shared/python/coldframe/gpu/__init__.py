"""Encoders on NVIDIA GPUs, imported only where the setting `device` asks for one."""
