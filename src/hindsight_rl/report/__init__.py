"""HTML pages and tables made from the files of training runs. Nothing here trains or changes a run."""
