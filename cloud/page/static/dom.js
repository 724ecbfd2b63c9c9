// Elements without innerHTML: names and reasons come from other machines and are text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function put(node, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
}

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  put(node, properties);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function svg(tag, properties = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  put(node, properties);
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

// Writing what is there already would still cost a layout: at 115 zones most cells stay as they are.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  const text = String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

// Put others in the place of a box's children. A button that had the focus hands it to the new one of its text, or else to
// the box: a reader with a keyboard stays where they were while the run goes on.
export function replaceKept(box, ...children) {
  const held = box.contains(document.activeElement) && document.activeElement !== box ? document.activeElement.textContent : null;
  box.replaceChildren(...children);
  if (held === null) return;
  const heir = [...box.querySelectorAll("button")].find((button) => button.textContent === held);
  if (!heir) box.tabIndex = -1;
  (heir || box).focus({ preventScroll: true });
}

// Move the focus among siblings of which one alone is a tab stop.
export function focusOnly(node, all) {
  for (const other of all) if (other !== node && other.tabIndex === 0) other.tabIndex = -1;
  node.tabIndex = 0;
  node.focus();
}
