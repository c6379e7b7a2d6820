"""The ottla command, one module or folder per noun; `app` puts them together, `nodes.start` is for supervisors."""
