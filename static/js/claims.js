/* Form of a claim: says while one writes what the sentence may not say. The server decides; this only asks it. */
"use strict";
(function () {
  const form = document.querySelector("form[data-check]");
  if (!form) return;
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  const fields = Array.from(form.querySelectorAll("textarea[data-language]"));
  let timer = 0;
  let asked = 0;

  const value = (name) => {
    const found = form.elements[name];
    return found ? found.value || "" : "";
  };

  function tell(language, troubles) {
    const place = form.querySelector('[data-live="' + language + '"]');
    place.replaceChildren(
      ...troubles.map((trouble) => {
        const line = document.createElement("li");
        if (trouble.text && !trouble.message.includes(trouble.text)) {
          const said = document.createElement("b");
          said.textContent = trouble.text + " ";
          line.append(said);
        }
        line.append(trouble.message);
        return line;
      })
    );
  }

  /* What the server said of a field when it refused. It stands until the sentence, or what it is judged by, changes;
     then the live check speaks. Where somebody else wrote meanwhile it also holds their words, and stays. */
  const refusal = (field) => ("moved" in form.dataset ? null : document.getElementById(field.id + "-error"));

  function drop(changed) {
    for (const field of fields) {
      const judged = changed === field || ["kind", "plan_version", "endpoint"].includes(changed.name);
      const said = judged && refusal(field);
      if (said) said.remove();
    }
  }

  async function ask() {
    const mine = ++asked;
    for (const field of fields) {
      const language = field.dataset.language;
      if (!field.value.trim() || refusal(field)) {
        tell(language, []);
        continue;
      }
      try {
        const answer = await fetch(form.dataset.check, {
          method: "POST",
          headers: { "Content-Type": "application/json", "X-CSRFToken": token },
          body: JSON.stringify({
            text: field.value, language: language, kind: value("kind"), study: form.dataset.study,
            plan_version: value("plan_version"), endpoint: value("endpoint"),
          }),
        });
        if (!answer.ok) continue;
        const found = await answer.json();
        if (mine !== asked) return;
        tell(language, found.troubles);
      } catch {
        return; // offline: the form is checked when it is sent
      }
    }
  }

  form.addEventListener("input", (event) => {
    drop(event.target);
    clearTimeout(timer);
    timer = setTimeout(ask, 350);
  });
  if (fields.some((field) => field.value.trim())) ask();
})();
