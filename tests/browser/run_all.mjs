// Opens one notebook in JupyterLab, runs all cells, and prints as JSON what a reader then sees.
// node run_all.mjs URL CHROMIUM PROFILE_FOLDER SCREENSHOT
import { chromium } from "playwright-core";

const [url, executablePath, profile, screenshot] = process.argv.slice(2);
const PATIENCE = 180_000; // ms
const quiet = [
  "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, args: quiet, viewport: { width: 1280, height: 1600 },
});
try {
  const page = context.pages()[0] ?? (await context.newPage());
  const pageErrors = [];
  page.on("pageerror", (error) => pageErrors.push(String(error)));

  await page.goto(url, { timeout: PATIENCE });
  await page.waitForSelector(".jp-Notebook .jp-CodeCell", { timeout: PATIENCE });
  await page.waitForTimeout(3000); // the kernel's session is not there yet although the indicator says idle

  const OPEN = ".jp-CodeCell .jp-InputPrompt:not(.jp-Placeholder-prompt)"; // folded cells show no number
  const prompts = () => page.$$eval(OPEN, (all) => all.map((p) => p.textContent.trim()));
  const begun = async () => (await prompts()).some((text) => /\[(\*|\d+)\]/.test(text));
  for (let attempt = 0; attempt < 5 && !(await begun()); attempt++) {
    await page.click('.lm-MenuBar-item:has-text("Run")');
    await page.click('.lm-Menu-item[data-command="runmenu:run-all"]');
    await page.waitForTimeout(2000);
    const select = await page.$(".jp-Dialog button.jp-mod-accept"); // "Select Kernel": nothing has run
    if (select) await select.click();
  }

  await page.waitForSelector(".jp-OutputArea-output img", { timeout: PATIENCE, state: "attached" });
  await page.waitForFunction(
    (open) => [...document.querySelectorAll(open)].every((p) => /\[\d+\]/.test(p.textContent))
      || document.querySelector('[data-mime-type="application/vnd.jupyter.error"]'),
    OPEN, { timeout: PATIENCE },
  );
  await page.screenshot({ path: screenshot });

  const count = (selector) => page.$$eval(selector, (all) => all.length);
  const seen = {
    prompts: await prompts(),
    figureWidths: await page.$$eval(".jp-OutputArea-output img", (all) => all.map((image) => image.naturalWidth)),
    errors: await count('[data-mime-type="application/vnd.jupyter.error"]'),
    stderr: await count('[data-mime-type="application/vnd.jupyter.stderr"]'),
    pageErrors,
  };
  console.log(JSON.stringify(seen));
} finally {
  await context.close();
}
