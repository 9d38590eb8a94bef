/*
 * What a PHP application has around a recipe: the kernel and front controller of symfony/skeleton, and Laravel's components put together as its
 * application does. Both are Debian's packages, which have no autoloader for an application.
 */
import { spawnSync } from 'node:child_process';

/** Debian's packages with what the recipes need. */
const PACKAGES = [
  'php-cli',
  'php-symfony-framework-bundle',
  'php-symfony-mercure',
  'php-illuminate-broadcasting',
  'php-illuminate-config',
  'php-illuminate-events',
  'php-illuminate-http',
  'php-guzzlehttp-guzzle',
  'php-vlucas-phpdotenv',
];
const PARTS = [
  'Symfony/Bundle/FrameworkBundle',
  'Symfony/Component/Mercure',
  'Illuminate/Broadcasting',
  'Illuminate/Config',
  'Illuminate/Events',
  'Illuminate/Http',
  'GuzzleHttp',
  'Dotenv',
];

/** @returns {string | false} why the recipes can't be run; false if they can */
export function missingPhp() {
  const code = PARTS.map((part) => `require_once '${part}/autoload.php';`).join(' ');
  const { status } = spawnSync('php', ['-r', code]);
  return status === 0 ? false : `PHP is not installed (apt-get install ${PACKAGES.join(' ')})`;
}

/** @param {readonly string[]} parts @param {string} folder of the application's own classes, as PHP has it */
const autoload = (parts, folder) => `
foreach (['${parts.join("', '")}'] as $part) {
    require_once "$part/autoload.php";
}
spl_autoload_register(static function ($class) {
    $file = ${folder}.'/'.str_replace('\\\\', '/', substr($class, 4)).'.php';
    if (str_starts_with($class, 'App\\\\') && is_file($file)) {
        require $file;
    }
});
`;

/** Files of symfony/skeleton, by name. */
export const SYMFONY_SKELETON = {
  'config/bundles.php': `<?php
return [Symfony\\Bundle\\FrameworkBundle\\FrameworkBundle::class => ['all' => true]];
`,
  'src/Kernel.php': `<?php
namespace App;

use Symfony\\Bundle\\FrameworkBundle\\Kernel\\MicroKernelTrait;
use Symfony\\Component\\HttpKernel\\Kernel as BaseKernel;

class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function getProjectDir(): string // found by composer.json otherwise
    {
        return dirname(__DIR__);
    }
}
`,
  'public/index.php': `<?php
${autoload(PARTS.slice(0, 2), "dirname(__DIR__).'/src'")}
$kernel = new App\\Kernel('prod', false);
$request = Symfony\\Component\\HttpFoundation\\Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
`,
};

const LARAVEL = `<?php
${autoload(PARTS.slice(2), "__DIR__.'/app'")}
$app = new Illuminate\\Container\\Container;
Illuminate\\Container\\Container::setInstance($app);
Illuminate\\Support\\Facades\\Facade::setFacadeApplication($app);
$app->instance('config', new Illuminate\\Config\\Repository(['broadcasting' => require __DIR__.'/config/broadcasting.php']));
$providers = [
    Illuminate\\Events\\EventServiceProvider::class,
    Illuminate\\Bus\\BusServiceProvider::class,
    Illuminate\\Broadcasting\\BroadcastServiceProvider::class,
    App\\Providers\\HoldfastServiceProvider::class,
];
foreach ($providers as $name) {
    $provider = new $name($app);
    $provider->register();
    if (method_exists($provider, 'boot')) {
        $provider->boot();
    }
}
require __DIR__.'/routes/channels.php';
`;

/** Dispatches the event of the recipe. */
export const DISPATCH = `${LARAVEL}
$app['events']->dispatch(new App\\Events\\OrderShipped(7));
`;

/** A router for PHP's own server: the page, and the route of Broadcast::routes(). The user is in a header. */
export const ROUTER = `${LARAVEL}
if ($_SERVER['REQUEST_URI'] !== '/broadcasting/auth') {
    return readfile(__DIR__.'/order.html');
}
$request = Illuminate\\Http\\Request::capture();
$request->setUserResolver(fn () => (object) ['id' => (int) $request->header('X-User', '1')]);
try {
    Illuminate\\Support\\Facades\\Broadcast::auth($request)->send();
} catch (Symfony\\Component\\HttpKernel\\Exception\\HttpException $exception) {
    http_response_code($exception->getStatusCode());
}
`;
