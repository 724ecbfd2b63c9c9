// The reader's zoom of the map: buttons, Ctrl and the wheel, two fingers, + - 0 on the keyboard; dragging moves it.
// The bare wheel and one finger scroll the page, as everywhere.

import { byId } from "./dom.js";

const MOST = 16;

export class Zoom {
  constructor(svg, changed) {
    this.scale = 1;
    this.x = this.y = 0;
    this.dragged = false;
    this._svg = svg;
    this._changed = changed;
    this._fingers = new Map();
    byId("zoom-in").addEventListener("click", () => this._by(1.6));
    byId("zoom-out").addEventListener("click", () => this._by(1 / 1.6));
    byId("zoom-reset").addEventListener("click", () => this.reset());
    svg.addEventListener("keydown", (event) => {
      const factor = { "+": 1.6, "=": 1.6, "-": 1 / 1.6, 0: 0 }[event.key];
      if (factor !== undefined && !event.ctrlKey && !event.metaKey) this._by(factor);
    });
    svg.addEventListener("wheel", (event) => this._wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this._down(event));
    svg.addEventListener("pointermove", (event) => this._move(event));
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, (event) => this._up(event));
  }

  reset() {
    this._by(0);
  }

  // Around a pixel of the picture, its middle unless told.
  _by(factor, pixel) {
    const { clientWidth: width, clientHeight: height } = this._svg.parentElement;
    const scale = factor === 0 ? 1 : Math.min(MOST, Math.max(1, this.scale * factor));
    const [u, v] = pixel ? [pixel[0] - width / 2, pixel[1] - height / 2] : [0, 0];
    this.x += u / scale - u / this.scale;
    this.y += v / scale - v / this.scale;
    this.scale = scale;
    if (scale === 1) this.x = this.y = 0;
    this._svg.classList.toggle("zoomed", scale > 1);
    byId("zoom-out").disabled = byId("zoom-reset").disabled = scale === 1;
    this._changed();
  }

  _pixel(event) {
    const box = this._svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  _wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this._by(Math.exp(-event.deltaY / 300), this._pixel(event));
  }

  _down(event) {
    this._fingers.set(event.pointerId, this._pixel(event));
    this._travel = 0;
    this.dragged = false;
  }

  _move(event) {
    const before = this._fingers.get(event.pointerId);
    if (!before) return;
    if (!event.buttons) return this._up(event); // it was let go outside the map, where nobody heard it
    const now = this._pixel(event);
    const others = [...this._fingers].filter(([id]) => id !== event.pointerId).map(([, pixel]) => pixel);
    this._fingers.set(event.pointerId, now);
    if (others.length === 1) {
      const apart = (pixel) => Math.hypot(pixel[0] - others[0][0], pixel[1] - others[0][1]);
      this.dragged = true;
      this._by(apart(now) / Math.max(apart(before), 1), [(now[0] + others[0][0]) / 2, (now[1] + others[0][1]) / 2]);
    } else if (this.scale > 1) {
      this._travel += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (this._travel < 4) return;
      if (!this.dragged) this._svg.setPointerCapture(event.pointerId);
      this.dragged = true;
      this.x += (now[0] - before[0]) / this.scale;
      this.y += (now[1] - before[1]) / this.scale;
      this._changed();
    }
  }

  _up(event) {
    this._fingers.delete(event.pointerId);
  }
}
