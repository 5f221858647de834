// What AWS's language service says of each definition.
const asl = require("amazon-states-language-service");
const text = require("fs").readFileSync(0, "utf8");

const judge = async (definition) => {
  const document = asl.TextDocument.create("file:///machine.asl", "json", 1, definition);
  const service = asl.getLanguageService({ aslOptions: { shouldShowStateSnippets: false } });
  const found = await service.doValidation(document, service.parseJSONDocument(document));
  return found.map((one) => `line ${one.range.start.line + 1}: ${one.message}`);
};
Promise.all(JSON.parse(text).map(judge)).then((said) => console.log(JSON.stringify(said)));
