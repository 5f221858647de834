"""``python -m s3commit`` is the command ``s3commit``."""

from __future__ import annotations

from s3commit.cli.main import main

if __name__ == "__main__":
    main()
