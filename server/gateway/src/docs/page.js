// Shows /openapi.json: every operation with its parameters, bodies and a line of curl.
'use strict';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const DEPTH_MAX = 6;
let description;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function resolved(schema) {
  const reference = schema && schema.$ref;
  return reference ? description.components.schemas[reference.split('/').pop()] : schema || {};
}

function variants(schema) {
  return (schema.oneOf || schema.anyOf || schema.allOf || []).filter((one) => one.type !== 'null');
}

function typeName(schema) {
  if (schema.$ref) return schema.$ref.split('/').pop();
  const chosen = variants(schema);
  if (chosen.length) return chosen.map(typeName).join(' | ');
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const types = [].concat(schema.type || 'any');
  return types.map((type) => (type === 'array' ? `${typeName(schema.items || {})}[]` : type)).join(' | ');
}

function example(given, depth = 0) {
  const schema = resolved(given);
  if (schema.example !== undefined) return schema.example;
  if (schema.enum) return schema.enum[0];
  const chosen = variants(schema);
  if (chosen.length) return example(chosen[0], depth);
  const type = [].concat(schema.type || 'any')[0];
  if (depth > DEPTH_MAX) return null;
  if (type === 'array') return [example(schema.items || {}, depth + 1)];
  if (type === 'object') {
    const members = Object.entries(schema.properties || {});
    return Object.fromEntries(members.map(([name, member]) => [name, example(member, depth + 1)]));
  }
  return { string: 'text', integer: 0, number: 0, boolean: false }[type] ?? null;
}

function table(heads, rows) {
  const made = element('table');
  const head = made.createTHead().insertRow();
  heads.forEach((text) => head.append(element('th', text, { scope: 'col' })));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((text, place) => line.insertCell().append(place ? text : element('code', text)));
  }
  return made;
}

function curl(method, path, operation) {
  const words = ['curl'];
  if (method !== 'get') words.push(`-X ${method.toUpperCase()}`);
  words.push(`'${location.origin}${path}'`);
  const body = operation.requestBody && operation.requestBody.content['application/json'];
  if (body) words.push(`-H 'content-type: application/json' -d '${JSON.stringify(example(body.schema))}'`);
  return words.join(' ');
}

function contentOf(section, title, content) {
  for (const [kind, { schema }] of Object.entries(content || {})) {
    const line = element('p', `${title}: `);
    line.append(element('code', `${kind} ${typeName(schema || {})}`));
    section.append(line);
    const members = Object.entries(resolved(schema).properties || {});
    if (members.length) {
      const required = resolved(schema).required || [];
      const rows = members.map(([name, member]) => [
        name, typeName(member), required.includes(name) ? 'always' : '', member.description || '',
      ]);
      section.append(table(['Field', 'Type', '', 'Meaning'], rows));
    }
    if (kind === 'application/json') section.append(element('pre', JSON.stringify(example(schema), null, 2)));
  }
}

function operationSection(path, method, operation) {
  const section = element('section', undefined, { id: operation.operationId });
  const title = element('h3');
  title.append(element('span', method, { class: 'method' }), element('code', path));
  section.append(title, element('p', operation.summary));
  if (operation.description) section.append(element('p', operation.description));
  section.append(element('pre', curl(method, path, operation)));
  const parameters = operation.parameters || [];
  if (parameters.length) {
    const rows = parameters.map((one) => [one.name, one.in, typeName(one.schema || {}), one.description || '']);
    section.append(table(['Parameter', 'In', 'Type', 'Meaning'], rows));
  }
  contentOf(section, 'Body', operation.requestBody && operation.requestBody.content);
  for (const [status, response] of Object.entries(operation.responses)) {
    section.append(element('h4', `${status}: ${response.description}`));
    if (status.startsWith('2')) contentOf(section, 'Answer', response.content);
  }
  return section;
}

function show() {
  document.getElementById('version').textContent = `version ${description.info.version}`;
  const contents = document.getElementById('contents');
  const operations = document.getElementById('operations');
  operations.replaceChildren(element('p', description.info.description));
  for (const tag of description.tags) {
    const list = element('ul');
    contents.append(element('h2', tag.name), list);
    operations.append(element('h2', tag.description));
    for (const [path, item] of Object.entries(description.paths)) {
      for (const method of METHODS.filter((name) => item[name] && item[name].tags.includes(tag.name))) {
        const operation = item[method];
        const entry = element('li');
        entry.append(element('a', operation.summary, { href: `#${operation.operationId}` }));
        list.append(entry);
        operations.append(operationSection(path, method, operation));
      }
    }
  }
}

fetch('/openapi.json')
  .then((answer) => answer.json())
  .then((document) => { description = document; show(); })
  .catch((error) => {
    document.getElementById('operations').replaceChildren(element('p', `The description cannot be shown: ${error}`));
  });
