import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Schema } from '#libs/contracts/src/json-schema';
import { PUBLISHED_FORMATS, TEXT_FORMATS, type TextFormat } from '#libs/contracts/src/text-formats';

/**
 * Compiles schemas of an OpenAPI or AsyncAPI document. `open` takes what clients have to take, fields that they do not know included; `closed` refuses
 * every field that is not declared.
 */
export class DocumentSchemas {
  private readonly ajv: Ajv2020;
  private readonly compiled = new Map<string, ValidateFunction>();
  /** The same by what was asked: a document has each of its schemas as one object, whose text is long. */
  private readonly known = new WeakMap<object, ValidateFunction>();

  constructor(
    document: { readonly components: { readonly schemas: Readonly<Record<string, Schema>> } },
    private readonly fields: 'open' | 'closed',
  ) {
    // What each file of specs compiles anew is asked a few times: to shorten its code takes longer than that saves.
    this.ajv = new Ajv2020({ allErrors: true, strictTypes: false, strictRequired: false, allowUnionTypes: true, code: { optimize: false } });
    for (const [format, name] of Object.entries(PUBLISHED_FORMATS)) this.ajv.addFormat(name, { type: 'string', validate: TEXT_FORMATS[format as TextFormat] });
    this.ajv.addSchema({ $id: 'gatehouse:document', $defs: this.prepared(document.components.schemas) as Schema });
  }

  /** What is wrong with a value, one sentence each. */
  problemsOf(schema: unknown, value: unknown): readonly string[] {
    const validate = this.compile(schema);
    if (validate(value)) return [];
    return validate.errors!.map((error) => `${error.instancePath || 'it'} ${error.message ?? 'is wrong'} ${JSON.stringify(error.params)}`);
  }

  compile(schema: unknown): ValidateFunction {
    const object = schema as object;
    let validate = this.known.get(object);
    if (validate !== undefined) return validate;
    const text = JSON.stringify(schema);
    validate = this.compiled.get(text);
    if (validate === undefined) this.compiled.set(text, (validate = this.ajv.compile(this.prepared(schema) as Schema)));
    this.known.set(object, validate);
    return validate;
  }

  private prepared(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((inner) => this.prepared(inner));
    if (typeof schema !== 'object' || schema === null) return schema;
    const inner = Object.entries(schema).map(([key, value]) => [key, key === '$ref' ? absolute(String(value)) : this.prepared(value)]);
    // Beside a `$ref`, `properties` only narrows what the referred class declares.
    const isClass = 'type' in schema && schema.type === 'object' && 'properties' in schema && !('additionalProperties' in schema);
    return { ...Object.fromEntries(inner), ...(isClass && this.fields === 'closed' && { additionalProperties: false }) };
  }
}

function absolute(reference: string): string {
  return reference.replace('#/components/schemas/', 'gatehouse:document#/$defs/');
}
