"""`report.md`: the report for a terminal or a repository, with its figures beside it."""

from console.report.document import Block, Command, Document, Heading, Paragraph, Picture, Points, Shown
from console.report.tables import markdown_text


def markdown(document: Document) -> str:
    """The document as Markdown; figures are PNG files of the folder `figures`."""
    parts = [f"# {markdown_text(document.title)}", markdown_text(document.subtitle), *map(_block, document.blocks)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"## {markdown_text(block.text)}"
        case Paragraph():
            text = markdown_text(block.text)
            return f"> {text}" if block.kind == "warning" else text
        case Points():
            return "\n".join(f"- {markdown_text(sentence)}" for sentence in block.sentences)
        case Command():
            return f"{markdown_text(block.lead)}\n\n```sh\n{block.text}\n```"
        case Shown():
            return block.table.to_markdown()
        case Picture():
            caption = markdown_text(block.caption)
            return f"![{caption}](figures/{block.stem}.png)\n\n*{caption}*"
