/*
 * A Hold whose policy answers. Takes port, processes, our package, and the router find-my-way.
 */
import { HEADERS, HOST, onCores, startOf } from './cores.js';

const { port, cores, packages } = startOf();
const [{ Hold }, { default: findMyWay }] = await Promise.all(packages.map((one) => import(one)));

const router = findMyWay();
router.on('GET', '/bench/:name', () => {});

/** @param {{ method: string, target: string }} head */
function decide({ method, target }) {
  const route = router.find(method, target);
  if (!route) return { refuse: 404 };
  const body = JSON.stringify({ name: route.params.name, id: route.searchParams.id });
  return { answer: { headers: HEADERS, body } };
}

const hold = new Hold({ policy: { decide } });
await onCores(cores, () => hold.listen(port, HOST));
