// The policy of this page lets no style stand in it, only its own files. The terminal's emulator (xterm.js) writes style
// elements and style attributes all the same: here they become what a script may do, sheets and properties.

/** In the place of a style element: what is written into it is a sheet of the document, until it is removed. */
function standIn(): HTMLElement {
  const element = make("template");
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

const make = document.createElement.bind(document);

document.createElement = ((name: string, options?: ElementCreationOptions) =>
  name === "style" ? standIn() : make(name, options)) as typeof document.createElement;

// The plain renderer gives each run of letters its colours this way.
HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};
