"""Sphinx settings. Build with `make docs`; nothing here needs a network."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.ext import autosummary

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from pygments.lexers import TextLexer

import sdulearn
from sdulearn.errors import is_there

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE / "figures")]

project = "sdulearn"
author = "The sdulearn developers"
copyright = author
release = version = sdulearn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "shared_text",
    "worked",
]
exclude_patterns = ["reproduction/new", "_build", "_ext", "figures"]
templates_path = ["_templates"]
# The order of the examples is a function, which Sphinx cannot cache.
suppress_warnings = ["config.cache"]

html_theme = "furo"
html_title = f"sdulearn {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_math_renderer = "mathml"
_REPOSITORY = "https://github.com/sdulearn/sdulearn"
html_theme_options = {
    "source_repository": _REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
    "footer_icons": [{"name": "Repository", "url": _REPOSITORY, "html": "Repository", "class": ""}],
    "light_css_variables": {"color-brand-primary": "#0b5fa5", "color-brand-content": "#0b5fa5"},
    "dark_css_variables": {"color-brand-primary": "#7cc0f4", "color-brand-content": "#7cc0f4"},
}

myst_enable_extensions = ["colon_fence", "dollarmath", "substitution", "deflist"]
myst_heading_anchors = 3
myst_substitutions = {"version": release}

numpydoc_show_class_members = False
autodoc_typehints = "none"
autodoc_default_options = {"member-order": "bysource"}
autosummary_generate = True
# "(Eq. name)" does not end a sentence.
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.", "(Eq.")

doctest_global_setup = "import warnings; warnings.simplefilter('error')"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

plot_html_show_formats = False
plot_html_show_source_link = False
plot_formats = ["svg"]
plot_rcparams = {"savefig.bbox": "tight", "font.size": 11}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]+\.py$",
    "capture_repr": ("_repr_html_",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "image_srcset": ["2x"],
    "reference_url": {"sdulearn": None},
    "reset_modules": ("matplotlib",),
    "abort_on_example_error": True,
}

# The order in which the examples are best read.
_EXAMPLES = [
    "plot_first_steps.py",
    "plot_joint_against_marginal.py",
    "plot_curved_boundary.py",
    "plot_name_the_classes.py",
]


def _reading_order(filename: str) -> tuple[int, str]:
    return (_EXAMPLES.index(filename) if filename in _EXAMPLES else len(_EXAMPLES), filename)


sphinx_gallery_conf["within_subsection_order"] = _reading_order


def _inline_math(translator, node):
    translator.body.append(str(tex2mathml(node.astext())))
    raise nodes.SkipNode


def _block_math(translator, node):
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def _adapt_page(app, pagename, templatename, context, doctree):
    """Leave out links that would be dead: to the source of generated pages, and from source code back to pages.

    viewcode knows one page per module, and ours are documented under two names.
    """
    if pagename.startswith(("gallery/", "reference/generated/")):
        context["page_source_suffix"] = ""
    if pagename.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


def _skip_without_torch(app, what, name, obj, options, lines):
    """Examples of networks run where PyTorch is installed, which the extra of the docs does not bring."""
    if (getattr(obj, "__module__", None) or "").startswith("sdulearn.torch") and not is_there("torch"):
        lines[:] = [f"{line}  # doctest: +SKIP" if line.lstrip().startswith(">>>") else line for line in lines]


def setup(app):
    """Formulas as MathML: no script, no network."""
    app.connect("autodoc-process-docstring", _skip_without_torch)
    app.connect("html-page-context", _adapt_page)
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
    # The layers in CONTRIBUTING.md, which a test reads.
    app.add_lexer("layers", TextLexer)
