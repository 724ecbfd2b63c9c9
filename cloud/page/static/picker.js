// Which zone to see alone: a search field with a list, reachable from everywhere on the page.

import { byId, el, setText } from "./dom.js";

export class Picker {
  constructor(store) {
    this._store = store;
    this._input = byId("pick");
    this._list = byId("pick-list");
    this._clear = byId("pick-clear");
    this._at = -1;
    this._input.addEventListener("focus", () => this._open());
    this._input.addEventListener("click", () => this._open());
    this._input.addEventListener("input", () => this._open(this._input.value));
    this._input.addEventListener("blur", () => this._close());
    this._input.addEventListener("keydown", (event) => this._key(event));
    this._clear.addEventListener("click", () => store.choose(null));
    byId("pick-previous").addEventListener("click", () => this._step(-1));
    byId("pick-next").addEventListener("click", () => this._step(1));
    // Before the field loses the focus, and with it the list.
    this._list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const option = event.target.closest("[role=option]");
      if (option) this._take(option.dataset.zone);
    });
    store.subscribe((changed) => {
      if (!store.run || !(changed.has("chosen") || changed.has("run"))) return;
      this._clear.hidden = store.chosen === null;
      if (document.activeElement !== this._input || this._list.hidden) this._input.value = store.chosen || "";
      this._input.placeholder = `All ${store.zones.length} zones`;
      setText(byId("chosen-said"), store.chosen ? `${store.chosen} is shown alone` : "");
    });
  }

  _names() {
    return this._store.zones.map((zone) => zone.name).sort((a, b) => a.localeCompare(b));
  }

  _open(search = "") {
    if (!this._store.run) return;
    const wanted = search.trim().toLowerCase();
    const names = this._names().filter((name) => name.toLowerCase().includes(wanted));
    const options = names.map((name, i) =>
      el("li", { role: "option", id: `pick-${i}`, "data-zone": name, "aria-selected": name === this._store.chosen ? "true" : "false", text: name }),
    );
    if (!options.length) options.push(el("li", { class: "nothing", text: "no such zone" }));
    this._list.replaceChildren(...options);
    this._list.hidden = false;
    this._input.setAttribute("aria-expanded", "true");
    this._point(wanted && names.length ? 0 : names.indexOf(this._store.chosen));
  }

  _close() {
    this._list.hidden = true;
    this._input.setAttribute("aria-expanded", "false");
    this._input.removeAttribute("aria-activedescendant");
    this._input.value = this._store.chosen || "";
  }

  _point(at) {
    const options = this._list.querySelectorAll("[role=option]");
    options[this._at]?.classList.remove("at");
    this._at = at;
    const option = options[at];
    if (!option) return this._input.removeAttribute("aria-activedescendant");
    option.classList.add("at");
    option.scrollIntoView({ block: "nearest" });
    this._input.setAttribute("aria-activedescendant", option.id);
  }

  _key(event) {
    const options = this._list.querySelectorAll("[role=option]");
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (this._list.hidden) this._open();
      else this._point((this._at + (event.key === "ArrowDown" ? 1 : -1) + options.length) % options.length);
      event.preventDefault();
    } else if (event.key === "Enter") {
      if (!this._list.hidden && options[this._at]) this._take(options[this._at].dataset.zone);
    } else if (event.key === "Escape" && !this._list.hidden) {
      this._close();
      event.stopPropagation(); // the list alone closes: the zone stays chosen
    }
  }

  _take(name) {
    if (name !== this._store.chosen) this._store.choose(name);
    this._close();
    this._input.value = name;
  }

  _step(by) {
    const names = this._names();
    const at = names.indexOf(this._store.chosen);
    const next = at < 0 ? (by > 0 ? 0 : names.length - 1) : (at + by + names.length) % names.length;
    if (names[next] !== this._store.chosen) this._store.choose(names[next]);
  }
}
