import { Picked } from '../fields.ts';
import { Command, ok, Operation, Query } from '../operation.ts';
import { JwtTemplate } from './jwt-template.ts';

@Operation({
  get: '/user_management/jwt_template',
  owner: 'identity',
  summary: 'Get the template of access tokens',
  answers: ok(JwtTemplate),
  refuses: ['entity_not_found'],
})
export class GetJwtTemplate extends Query<JwtTemplate> {}

@Operation({
  put: '/user_management/jwt_template',
  owner: 'identity',
  summary: 'Set the template of access tokens',
  description:
    'A JSON object whose values may be `{{ expression }}`, or texts that contain some. An expression is a path such as `user.metadata.plan`, a text in quotes, or several of these with `||` between them: the first that is there counts. A value that is one expression is inserted as it is; within a text it becomes text. Names that tokens use themselves are refused, except `role` and `aud`. `{}` takes the template away.',
  answers: ok(JwtTemplate),
})
export class UpdateJwtTemplate extends Command<JwtTemplate> {
  @Picked(JwtTemplate) content!: string;
}
