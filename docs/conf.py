"""Sphinx configuration. The build needs no network."""

from __future__ import annotations

import re
from typing import Any

import multikernel

project = "multikernel"
author = "The multikernel developers"
copyright = "2026, The multikernel developers"
release = multikernel.__version__
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
]
# No intersphinx: it would fetch the inventories of other projects during the build.

exclude_patterns = ["_build", "generated/README*"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # numpydoc's parameter sections say types, and shapes as well
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the class template lists the members itself
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"multikernel {release}"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_show_sourcelink = False
html_sidebars = {"**": []}  # a handful of pages: the bar at the top says it all


def skip_request_methods(
    app: Any, what: str, name: str, obj: object, skip: bool, options: Any
) -> bool | None:
    """Leave out scikit-learn's generated ``set_*_request`` methods.

    They are about metadata routing, and their texts point at pages of scikit-learn's own manual.
    """
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip_request_methods)
