"""The YAML editor of the create page, as people use it."""

# Reading the clipboard takes a permission that tests have no reason to need; a paste event is what the editor gets.
PASTE = """([editor, text]) => {
  const data = new DataTransfer();
  data.setData('text/plain', text);
  editor.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def paste(page, text):
    """Replace all of the text in the editor by what is pasted."""
    editor = page.locator(".cm-content")
    editor.click()
    page.keyboard.press("ControlOrMeta+a")
    page.evaluate(PASTE, [editor.element_handle(), text])
