"""Packages: a dataset as a folder of files, whole or not there at all.

In:    companies, and what the caller wants said about them.
Out:   CSV, JSON lines, Parquet, XLSX, a manifest, a data dictionary, checksums and a quality report.
Never: a clock (equal companies give equal bytes), a half-written folder, a formula, a script.
"""

from penstock.builder.package.export import Manifest, export

__all__ = ["Manifest", "export"]
