"""From files to samples: the only room that knows formats, folders and downloads."""
