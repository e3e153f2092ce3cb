// Writes a record and reads it: records.mjs BASE TOPIC
const [base, topic] = process.argv.slice(2);
const records = `${base}/api/v1/topics/${topic}/records`;
const body = '{"records":[{"key":"node","value":{"from":"node","n":9223372036854775807}}]}';
const written = await fetch(records, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
console.log(await written.text());
const read = await fetch(`${records}?from=earliest&wait=5000`);
console.log(await read.text());
