// Runs before the page is drawn, so that a chosen theme does not flash.
(function () {
  "use strict";
  try {
    const chosen = localStorage.getItem("penstock-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch (error) { /* a browser may refuse storage; then the system's theme holds */ }
})();
