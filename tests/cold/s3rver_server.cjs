// Run s3rver, in the environment of `make test-cold`: `node s3rver_server.cjs PACKAGES DIRECTORY`. Prints its URL,
// and serves until its standard input ends. It keeps objects as files, has the bucket `cold`, and checks
// signatures.
const [packages, directory] = process.argv.slice(2);
const S3rver = require(require.resolve("s3rver", { paths: [packages] }));

const configureBuckets = [{ name: "cold" }];
const server = new S3rver({ address: "127.0.0.1", port: 0, silent: true, directory, configureBuckets });
server.run().then(({ port }) => console.log(`http://127.0.0.1:${port}`));
process.stdin.on("end", () => process.exit(0)).resume();
