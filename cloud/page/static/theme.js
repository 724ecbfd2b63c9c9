// Light, dark, or as the system has it. A classic script in <head>, so that the page never flashes in the wrong one.
(function () {
  const KEY = "sgfusion.theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      return window.localStorage.getItem(KEY);
    } catch {
      return null; // storage may be forbidden: the choice then lasts as long as the page
    }
  }

  function show(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    window.dispatchEvent(new Event("themechange"));
  }

  const said = () => document.documentElement.dataset.theme || "system";

  window.sgfusionTheme = {
    said,
    // From the system's to the other one, then to the one that is like the system's and stays, then back.
    next() {
      const [like, other] = system.matches ? ["dark", "light"] : ["light", "dark"];
      return { system: other, [other]: like, [like]: "system" }[said()];
    },
    turn() {
      const theme = this.next();
      try {
        if (theme === "system") window.localStorage.removeItem(KEY);
        else window.localStorage.setItem(KEY, theme);
      } catch {
        // as above
      }
      show(theme);
    },
  };
  const theme = kept();
  if (theme === "light" || theme === "dark") show(theme);
  system.addEventListener("change", () => show(said()));
})();
