/** Every operation, by its side effect of registering: for the routes, the API document and the table. */
import './access-checks/operations.ts';
import './api-keys/operations.ts';
import './authorization-resources/operations.ts';
import './environment-settings/operations.ts';
import './environments/operations.ts';
import './feed/operations.ts';
import './groups/operations.ts';
import './organization-memberships/operations.ts';
import './organizations/operations.ts';
import './permissions/operations.ts';
import './resource-types/operations.ts';
import './role-assignments/operations.ts';
import './roles/operations.ts';
import './token-keys/operations.ts';
import './users/operations.ts';
import './webhook-endpoints/operations.ts';
