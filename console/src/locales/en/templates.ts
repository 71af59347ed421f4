/**
 * The texts of the built-in templates (kinds/apps/templates/) in the person's language, by template and path of the value.
 * '' is the template itself. What is not here is shown as the template says it, which is English.
 */
export const templates: Record<string, Record<string, string>> = {};
