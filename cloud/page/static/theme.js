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
    if (theme) document.documentElement.dataset.theme = theme;
    window.dispatchEvent(new Event("themechange"));
  }

  window.sgfusionTheme = {
    get: () => document.documentElement.dataset.theme || (system.matches ? "dark" : "light"),
    toggle() {
      const theme = this.get() === "dark" ? "light" : "dark";
      try {
        window.localStorage.setItem(KEY, theme);
      } catch {
        // as above
      }
      show(theme);
    },
  };
  const theme = kept();
  if (theme === "light" || theme === "dark") show(theme);
  system.addEventListener("change", () => show(null));
})();
