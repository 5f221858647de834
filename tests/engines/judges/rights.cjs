// How IAM decides each request, by the simulator: a program under the AGPL, which is not shipped.
const { runSimulation } = require("@cloud-copilot/iam-simulate");
const text = require("fs").readFileSync(0, "utf8");

const judge = async (simulation) => {
  const found = await runSimulation(simulation, {});
  return found.resultType === "error" ? JSON.stringify(found.errors) : found.overallResult;
};
(async () => {
  const said = [];
  for (const simulation of JSON.parse(text)) said.push(await judge(simulation));
  console.log(JSON.stringify(said));
})();
