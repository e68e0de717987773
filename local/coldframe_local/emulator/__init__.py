"""Emulator for a deployment on this machine: gateway, Lambda, stores and state machines, behind one port."""
