// Boxes that scroll fade where they go on: a line that is cut in half looks like a fault, and one that is not, like the end.

import { el } from "./dom.js";

// What stands at a box's end says whether it is in sight: nothing is measured as messages come.
export function fades() {
  for (const box of document.querySelectorAll(".scrolls")) {
    const end = el("span", { class: "end", "aria-hidden": "true" });
    box.append(end);
    const look = (seen) => {
      const more = box.classList.toggle("more", !seen.at(-1).isIntersecting);
      if (more) box.style.setProperty("--bar", `${box.offsetWidth - box.clientWidth}px`); // none where bars lie over what scrolls
    };
    new IntersectionObserver(look, { root: box, rootMargin: "0px 1000px 3px" }).observe(end);
  }
}
