"""`report.html`: one file that needs no other, with its figures inside."""

import base64
from html import escape
from importlib.resources import files

from console.report.document import Block, Command, Document, Heading, Paragraph, Picture, Points, Shown


def page(document: Document) -> str:
    """The document as HTML. Figures are SVG in data URIs: sharp at any size, and their ids cannot meet."""
    links = "\n".join(
        f'<a href="#{block.anchor}">{escape(block.text)}</a>' for block in document.blocks if isinstance(block, Heading)
    )
    style = files("console.report").joinpath("page.css").read_text("utf-8")
    body = "\n".join(_block(block) for block in document.blocks)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(document.title)}</title>
<style>
{style}</style>
</head>
<body>
<h1>{escape(document.title)}</h1>
<p class="subtitle">{escape(document.subtitle)}</p>
<nav>
{links}
</nav>
{body}
</body>
</html>
"""


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f'<h2 id="{block.anchor}">{escape(block.text)}</h2>'
        case Paragraph():
            return f'<p class="{block.kind}">{escape(block.text)}</p>'
        case Points():
            points = "".join(f"<li>{escape(sentence)}</li>" for sentence in block.sentences)
            return f'<ul class="{block.kind}">{points}</ul>'
        case Command():
            return f'<p class="note command">{escape(block.lead)} {escape(block.text)}</p>'
        case Shown():
            table = block.table.to_html()
            return (
                f"<details><summary>{escape(block.table.title)}</summary>{table}</details>" if block.folded else table
            )
        case Picture():
            data = base64.b64encode(block.files["svg"]).decode()
            caption = escape(block.caption, quote=True)
            return (
                f'<figure id="{block.stem}"><img alt="{caption}" src="data:image/svg+xml;base64,{data}">'
                f"<figcaption>{caption}</figcaption></figure>"
            )
