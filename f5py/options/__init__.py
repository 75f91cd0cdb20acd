"""The options of all commands: names, meanings and defaults of the command line, as dataclasses.

Each module is imported by those that need its classes only, because making them takes time.
"""

from f5py.options.declaration import Group, Kind, Option, Options, declarations

__all__ = ["Group", "Kind", "Option", "Options", "declarations"]
