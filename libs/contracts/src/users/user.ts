import { Const, Flag, Id, MapOfText, OneOf, Text, Time } from '../fields.ts';

/** A person who signs in to the application. */
export class User {
  @Const('user') object!: 'user';
  @Id('user', { doc: 'Identifies the user.' }) id!: string;
  @Text({
    doc: 'Trimmed and in lower case. Unique in the environment, whatever its letters look like: `straße` is `strasse`.',
    max: 254,
    format: 'email',
    visible: true,
    personal: true,
    example: 'ada@acme.test',
  })
  email!: string;
  @Flag({ doc: 'Whether the user has shown to read the mail of this address.' }) email_verified!: boolean;
  @Text({ doc: 'First name.', max: 255, nullable: true, personal: true, example: 'Ada' }) first_name!: string | null;
  @Text({ doc: 'Last name.', max: 255, nullable: true, personal: true, example: 'Lovelace' }) last_name!: string | null;
  @Text({ doc: 'The whole name, where it was given; not made from the other two.', max: 255, nullable: true, personal: true, example: 'Ada Lovelace' })
  name!: string | null;
  @Text({ doc: 'Where a picture is.', max: 2048, nullable: true, personal: true, example: 'https://example.com/ada.png' }) profile_picture_url!: string | null;
  @Text({ doc: 'Your own identifier; unique in the environment.', min: 1, max: 128, ascii: true, nullable: true, personal: true, example: 'employee-7' })
  external_id!: string | null;
  @MapOfText({
    doc: 'Your own data: at most 50 pairs, keys of 40 and values of 600 ASCII characters.',
    personal: true,
    example: { language: 'en' },
  })
  metadata!: Readonly<Record<string, string>>;
  @Time({ doc: 'When the user signed in last, as far as is known a second later. Null: never; in events always.', nullable: true }) last_sign_in_at!:
    string | null;
  @Text({ doc: 'Preferred language, as a BCP 47 tag.', max: 64, nullable: true, example: 'en-GB' }) locale!: string | null;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** Who a user is to a provider by which they sign in. */
export class Identity {
  @Text({ doc: 'Identifies the user at the provider.', max: 255, personal: true }) idp_id!: string;
  @OneOf(['OAuth'], { doc: 'How the provider is asked.' }) type!: 'OAuth';
  @Text({ doc: 'The provider.', max: 64, example: 'GoogleOAuth' }) provider!: string;
}
