/* First page: an address that MLflow's client prints (/#/experiments/8/runs/<id>) opens that logged run. */
"use strict";
(function () {
  const list = document.currentScript.dataset.logged;
  const found = /^#\/experiments\/\d+(?:\/runs\/([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12}))?\/?$/;

  function go() {
    const parts = found.exec(window.location.hash);
    if (parts) window.location.replace(parts[1] ? list + parts.slice(1).join("-") + "/" : list);
  }

  window.addEventListener("hashchange", go);
  go();
})();
