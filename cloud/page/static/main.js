// The page: everything is put together here. Views subscribe in the order in which they must see a change.

import { Address } from "./address.js";
import { fetchAhead } from "./charts.js";
import { charts } from "./curves.js";
import { TreeView } from "./dendrogram.js";
import { byId } from "./dom.js";
import { fades } from "./fades.js";
import { Health } from "./health.js";
import { Ladder } from "./ladder.js";
import { Legend, Palette } from "./legend.js";
import { ZoneMap } from "./map.js";
import { Picker } from "./picker.js";
import { Rounds } from "./rounds.js";
import { Store } from "./store.js";
import { Stream } from "./stream.js";
import { ZoneTable } from "./table.js";
import { Tooltip } from "./tooltip.js";
import { ZoneCard } from "./zone_card.js";

const store = new Store();
new Address(store);
const palette = new Palette(store); // first: the others paint with it
const tooltip = new Tooltip(store);
new Rounds(store);
new Legend(store, palette, tooltip);
new ZoneMap(store, palette, tooltip);
new Picker(store);
new Health(store);
new ZoneCard(store);
new TreeView(store, palette, tooltip);
new Ladder(store);
new ZoneTable(store, palette);
charts(store);
fades();

store.subscribe(() => {
  document.body.classList.toggle("ready", store.run !== null);
  document.body.classList.toggle("few", store.zones.length <= 8);
});

for (const split of ["validation", "test"]) {
  byId(`split-${split}`).addEventListener("change", () => store.set("split", split));
}
store.subscribe((changed) => {
  if (changed.has("split")) byId(`split-${store.split}`).checked = true;
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && store.chosen !== null && !event.defaultPrevented) store.choose(null);
  if (event.key === "/" && !event.target.matches("input[type=text], input[type=search]")) {
    byId("pick").focus();
    event.preventDefault();
  }
});

const THEMES = { system: "as the system has them", light: "light", dark: "dark" };
function themed() {
  const button = byId("theme");
  const said = window.sgfusionTheme.said();
  button.dataset.said = said;
  button.setAttribute("aria-label", `Colours: ${THEMES[said]}`);
  button.title = `Colours: ${THEMES[said]}. A click: ${THEMES[window.sgfusionTheme.next()]}`;
}
byId("theme").addEventListener("click", () => window.sgfusionTheme.turn());
window.addEventListener("themechange", themed);
themed();

new Stream(store).start();
fetchAhead();
byId("stalled").remove(); // all scripts are here and have run
