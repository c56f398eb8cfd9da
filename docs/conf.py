"""Sphinx configuration. The build needs no network."""

from __future__ import annotations

import os
import re
from typing import Any

# Examples are small: a second thread of BLAS costs them more than it brings.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import multikernel
from multikernel._checkout import import_experiments

import_experiments()  # the reference lists functions of this package, which is not installed

project = "multikernel"
author = "The multikernel developers"
copyright = "2026, The multikernel developers"
release = multikernel.__version__
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax among the files of the site: formulas need no network
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
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
toc_object_entries_show_parents = "hide"  # room for the names of methods at the side
numpydoc_show_class_members = False  # the class template lists the members itself
numpydoc_xref_param_type = False

# The gallery lies beside the generated reference: git ignores both, `make clean` removes both.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"/plot_",
    # The promoters of UCI are not among the data that come with scikit-learn.
    "ignore_pattern": r"plot_promoters",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("multikernel",),
    "inspect_global_variables": False,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
}

html_theme = "pydata_sphinx_theme"
html_title = f"multikernel {release}"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
}
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["multikernel.css"]
# The wide tables of these pages need the room of the column at the side.
html_sidebars = {
    "**": ["sidebar-nav-bs"],
    "index": [],
    "reproduction": [],
    "bounds": [],
    "start": [],
    "search": [],
    "coming-from": [],
}


def skip_request_methods(
    app: Any, what: str, name: str, obj: object, skip: bool, options: Any
) -> bool | None:
    """Leave out scikit-learn's methods for metadata routing, which its own manual describes."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def unlink_sklearn(
    app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Turn references of inherited docstrings to pages of scikit-learn's manual into text."""
    if (getattr(obj, "__module__", None) or "").startswith("sklearn"):
        text = "\n".join(lines)
        text = re.sub(r":(?:ref|term):`([^`<]+?)\s*<[^`>]*>`", r"\1", text)
        lines[:] = re.sub(r":(?:ref|term):`([^`]+)`", r"``\1``", text).split("\n")


def show_examples(
    app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """End the text of a public function with the examples that use it; classes: their template."""
    if what == "function":
        lines += ["", f".. minigallery:: {name}", "   :add-heading: In the gallery", ""]


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip_request_methods)
    app.connect("autodoc-process-docstring", unlink_sklearn)
    app.connect("autodoc-process-docstring", show_examples, priority=900)  # after numpydoc
